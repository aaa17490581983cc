/// Comparison of file names by their bytes. `==` also treats canonically equivalent names as equal (é as one scalar, and as e with an
/// accent), which file systems and other machines distinguish.
extension String {
    /// Whether the other string has the same bytes.
    package func hasBytes(of other: String) -> Bool { self.utf8.elementsEqual(other.utf8) }
}

extension Sequence {
    /// Returns the elements with a name that a user typed: those that match byte for byte, or if there are none, those with an equivalent
    /// name, as another keyboard may produce it.
    package func called(_ name: String, by path: (Element) -> String) -> [Element] {
        let equivalent = self.filter { path($0) == name }
        let exact = equivalent.filter { path($0).hasBytes(of: name) }
        return exact.isEmpty ? equivalent : exact
    }
}
