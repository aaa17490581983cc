public import EarshotCore

// Beside the core, in which no rule may depend on a hash's seed.
extension EarshotError: Hashable {
    /// Hashes what is compared.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(self.code)
        hasher.combine(self.message)
        hasher.combine(self.candidates)
        hasher.combine(self.remedy)
    }
}
