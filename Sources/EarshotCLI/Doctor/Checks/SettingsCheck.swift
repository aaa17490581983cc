import EarshotSafety

extension Check {
    /// Whether the settings files will do.
    static let settings = Check("settings") { facts in
        guard facts.settings.isChecked else { return [.skip("earshotd is neither beside this command nor on the PATH")] }
        guard !facts.settings.files.isEmpty else { return [.ok("no file: every setting is at its default")] }
        return facts.settings.files.map { file in
            guard let problem = file.problem else { return .ok(file.path.escapedForDisplay) }
            guard !file.isOfThisUser else { return .skip("\(problem); that may be this user's trouble alone: sudo earshot doctor") }
            // Without a path it would be about the settings of the user who types it, and by another user about what that one may open.
            let isSystem = file.path.hasPrefix(DoctorFacts.Settings.systemDirectory + "/")
            let check = "earshotd --check-config"
            let whole = isSystem ? "sudo -u earshot \(check) --config \(file.path.escapedForDisplay)" : check
            return .fail(problem, next: "correct that; \(whole) says when it will do")
        }
    }
}
