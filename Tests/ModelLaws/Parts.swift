import Foundation

/// The parts of values, found by reflection: for types whose equality does not compare every part.
enum Parts {
    /// Returns the places of the parts in which two values of a type differ.
    static func differences(_ one: Any, _ other: Any, at place: String = "it") -> [String] {
        if let isSame = self.leavesAreSame(one, other) { return isSame ? [] : [place] }
        let (left, right) = (Mirror(reflecting: one).children, Mirror(reflecting: other).children)
        // A value without parts is compared by its description.
        if left.isEmpty, right.isEmpty { return String(reflecting: one) == String(reflecting: other) ? [] : [place] }
        guard left.count == right.count else { return [place] }
        return zip(left, right).enumerated().flatMap { index, pair in
            guard pair.0.label == pair.1.label else { return [place] }
            return self.differences(pair.0.value, pair.1.value, at: "\(place).\(pair.0.label ?? "\(index)")")
        }
    }

    /// Whether two values are equal, if only equality tells values of their type apart: their place in memory and their order do not count.
    /// `nil` for other types.
    private static func leavesAreSame(_ one: Any, _ other: Any) -> Bool? {
        switch (one, other) {
        case (let one as Date, let other as Date): return one == other
        case (let one as [String: String], let other as [String: String]): return one == other
        case (let one as [UInt8], let other as [UInt8]): return one == other
        default: break
        }
        // A buffer of NIOCore, which these tests do not import.
        guard String(reflecting: type(of: one)) == "NIOCore.ByteBuffer", let one = one as? AnyHashable, let other = other as? AnyHashable
        else {
            return nil
        }
        return one == other
    }
}
