import EarshotSafety

extension Check {
    /// Whether the settings files are valid.
    static let settings = Check("settings") { facts in
        guard facts.settings.isChecked else { return [.skip("earshotd was not found beside this command or on the PATH")] }
        guard !facts.settings.files.isEmpty else { return [.ok("no settings file: all settings have their defaults")] }
        return facts.settings.files.map { file in
            guard let problem = file.problem else { return .ok(file.path.escapedForDisplay) }
            guard !file.isOfThisUser else { return .skip("\(problem); this may concern only this user; run sudo earshot doctor") }
            // Without --config, the command would check the settings of the user who types it; run by another user, it would also check
            // that user's permissions.
            let isSystem = file.path.hasPrefix(DoctorFacts.Settings.systemDirectory + "/")
            let check = "earshotd --check-config"
            let whole = isSystem ? "sudo -u earshot \(check) --config \(file.path.escapedForDisplay)" : check
            return .fail(problem, next: "correct it, then check the settings: \(whole)")
        }
    }
}
