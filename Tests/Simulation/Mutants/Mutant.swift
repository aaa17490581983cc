import Glibc

/// Which planted fault counts: added to the copy of the core that the patches of this folder are for.
enum Mutant {
    private static let current = getenv("EARSHOT_MUTANT").map { String(cString: $0) } ?? ""

    static func `is`(_ name: String) -> Bool { self.current == name }
}
