internal import EarshotSafety

/// The name of an offered file, which may be a relative path, divided into the name itself and the folder that contains it.
package struct OfferedPath: Sendable, Hashable {
    /// The folder, relative to the directory of received files; `nil` if the file goes there directly.
    package let folder: String?
    /// The name of the file.
    package let name: String

    /// Creates a path from a name that a peer has chosen; `nil` unless every component may become part of a path.
    package init?(_ text: String) {
        guard let path = try? SafeRelativePath(text) else { return nil }
        self.folder = path.folder?.description
        self.name = path.last.description
    }
}
