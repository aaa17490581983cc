internal import Earshot
internal import EarshotClient
internal import HTTPTypes
internal import Hummingbird
internal import HummingbirdCore

/// The format in which a caller fetches a received directory: the tree format if the caller asks for it, as the command line does, or else
/// a tar archive.
enum TreeFormat {
    /// The size of one piece of an archive, in bytes.
    private static let pieceSize = 256 * 1024

    /// Whether `Accept` names the tree's media type.
    static func isWanted(by headers: HTTPFields) -> Bool {
        (headers[.accept] ?? "").split(separator: ",").contains { range in
            let type = range.split(separator: ";", maxSplits: 1, omittingEmptySubsequences: false).first ?? ""
            return type.filter { $0 != " " }.lowercased() == ControlAPI.treeMediaType
        }
    }

    /// Returns an answer that makes the archive while the client reads it. The length is unknown in advance, and ranges are not supported.
    static func response(_ archive: ResourceArchive) -> Response {
        let body = ResponseBody { writer in
            while case let piece = try await archive.next(count: Self.pieceSize), piece.readableBytes > 0 { try await writer.write(piece) }
            try await writer.finish(nil)
        }
        return Response(status: .ok, headers: [.contentType: "application/x-tar", .vary: "Accept"], body: body)
    }
}
