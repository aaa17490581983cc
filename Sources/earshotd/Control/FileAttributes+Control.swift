internal import Earshot
internal import EarshotClient
internal import EarshotSafety
internal import HTTPTypes

/// A file's attributes in the query of a request that sends the file, and in the header of an answer with its content.
extension ControlAPI.FileAttributes {
    /// Reads the attributes from the query; `nil` if the query has none.
    /// - Throws: `invalid-parameter`.
    init?(_ query: Query) throws(APIProblem) {
        let (isExecutable, hasHoles) = (try query.flag("executable"), try query.flag("holes"))
        guard let modified = try query.text("modified") else {
            guard !isExecutable, !hasHoles else {
                throw APIProblem(.invalidParameter, "'executable' and 'holes' in the query come with 'modified'; give the file's time too")
            }
            return nil
        }
        guard let modified = Int64(modified) else {
            throw APIProblem(
                .invalidParameter, "'modified' in the query is a whole number of nanoseconds since 1970, from \(Int64.min) to \(Int64.max)")
        }
        self.init(modified: modified, isExecutable: isExecutable, hasHoles: hasHoles)
    }

    /// The header fields of an answer.
    var fields: [(HTTPField.Name, String)] {
        [
            (Self.name("Earshot-Modified"), "\(self.modified)"), (Self.name("Earshot-Executable"), "\(self.isExecutable)"),
            (Self.name("Earshot-Holes"), "\(self.hasHoles)"),
        ]
    }

    private static func name(_ text: String) -> HTTPField.Name {
        guard let name = HTTPField.Name(text) else { preconditionFailure("\(text) is a token") }
        return name
    }
}
