/// Names of files are the same when their bytes are: `==` also takes canonically equivalent ones for equal (é as one scalar, and as e with an
/// accent), which file systems and other machines tell apart.
extension String {
    /// Whether the other has the same bytes.
    package func hasBytes(of other: String) -> Bool { self.utf8.elementsEqual(other.utf8) }
}

extension Sequence {
    /// Those of a name that a person typed: those that have it byte for byte, or where there are none, those that have an equivalent one, as
    /// another keyboard writes it.
    package func called(_ name: String, by path: (Element) -> String) -> [Element] {
        let equivalent = self.filter { path($0) == name }
        let exact = equivalent.filter { path($0).hasBytes(of: name) }
        return exact.isEmpty ? equivalent : exact
    }
}
