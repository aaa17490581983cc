public import EarshotCore

// Not in the core, where no rule may depend on the seed of a hash.
extension EarshotError: Hashable {
    /// Hashes the properties that are compared.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(self.code)
        hasher.combine(self.message)
        hasher.combine(self.candidates)
        hasher.combine(self.remedy)
    }
}
