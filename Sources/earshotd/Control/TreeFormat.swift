internal import Earshot
internal import EarshotClient
internal import HTTPTypes
internal import Hummingbird
internal import HummingbirdCore

/// In which form a received directory goes to a caller: as its tree to who asks for that, such as our command line, and as a tar archive
/// to everyone else.
enum TreeFormat {
    /// Bytes in one piece of an archive.
    private static let pieceSize = 256 * 1024

    /// Whether `Accept` names the tree's media type.
    static func isWanted(by headers: HTTPFields) -> Bool {
        (headers[.accept] ?? "").split(separator: ",").contains { range in
            let type = range.split(separator: ";", maxSplits: 1, omittingEmptySubsequences: false).first ?? ""
            return type.filter { $0 != " " }.lowercased() == ControlAPI.treeMediaType
        }
    }

    /// An answer that makes the archive as it is read: its length is not known beforehand, and ranges are not served.
    static func response(_ archive: ResourceArchive) -> Response {
        let body = ResponseBody { writer in
            while case let piece = try await archive.next(count: Self.pieceSize), piece.readableBytes > 0 { try await writer.write(piece) }
            try await writer.finish(nil)
        }
        return Response(status: .ok, headers: [.contentType: "application/x-tar", .vary: "Accept"], body: body)
    }
}
