import EarshotControl

extension ControlClient {
    /// The id of the group of which messages or files are wanted; of one that this machine has left, its full id.
    func groupID(_ name: String?) async throws(ControlError) -> String? {
        guard let name else { return nil }
        do throws(ControlError) {
            return try await self.group(name).value.id
        } catch {
            guard case .problem(let problem) = error, problem.code == "unknown-group", name.utf8.count >= 32 else { throw error }
            return name.lowercased()
        }
    }
}
