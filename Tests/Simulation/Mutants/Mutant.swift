import Glibc

/// The selected planted fault. This file is added to the copy of the core that this folder's patches apply to.
enum Mutant {
    private static let current = getenv("EARSHOT_MUTANT").map { String(cString: $0) } ?? ""

    static func `is`(_ name: String) -> Bool { self.current == name }
}
