import EarshotClient
import EarshotSafety
import Glibc

/// Changes the drop-in of `earshot config`. The drop-in is replaced as a whole, after `earshotd` has checked the settings with it.
struct SettingsChange {
    /// A change of one key: the value as its line spells it, or `nil` to remove the line.
    struct Edit {
        let key: String
        let name: SettingsText.Name
        let spelling: String?
    }

    /// The name of the drop-in.
    static let dropIn = "50-cli.conf"
    /// The largest drop-in, in bytes, as for `earshotd`.
    static let byteLimit = 1024 * 1024

    let place: SettingsPlace
    let edits: [Edit]
    private let words: String

    /// Creates a change; `verb` is the word of the command, for errors.
    init(_ place: SettingsPlace, _ changes: [(key: String, value: String?)], verb: String) throws(CommandFailure) {
        self.place = place
        var edits: [Edit] = []
        for (key, value) in changes {
            guard let name = SettingsText.Name(key) else {
                throw CommandFailure(
                    .usage, "cannot \(verb) '\(key.escapedForDisplay)': a key has its section before it, such as peer.name",
                    hint: "list the keys: earshot config list")
            }
            let spelling = value.map(SettingsText.spelling)
            if case .some(.none) = spelling {
                throw CommandFailure(
                    .usage,
                    "cannot \(verb) \(key.escapedForDisplay): a settings file cannot hold a value with control characters, or one with \" "
                        + "that needs quotes", code: "invalid-parameter")
            }
            edits.append(Edit(key: key, name: name, spelling: spelling ?? nil))
        }
        self.edits = edits
        self.words = "\(verb) \(edits.map(\.key.escapedForDisplay).joined(separator: ", "))"
    }

    /// The result of a change.
    struct Outcome {
        /// The settings of the files alone, after the change.
        let files: ControlAPI.SettingList
        /// The keys whose lines were missing already.
        let missing: Set<String>
        /// The contents of the drop-in before and after the change; `nil` if there was or is none.
        let before: [UInt8]?
        let after: [UInt8]?
    }

    /// Writes the drop-in, and runs `body` before the next change can begin.
    /// - Throws: If the check or `body` fails, the drop-in is as it was before.
    func apply<Result>(_ body: (Outcome) async throws -> Result) async throws -> Result {
        let made = FileStatus(path: self.place.directory) == nil
        let directory = try self.directory()
        // Ends with the descriptor.
        while flock(directory.descriptor, LOCK_EX) != 0, errno == EINTR {}
        do {
            try self.removeParts(from: directory)
            let name = try SafeName(Self.dropIn)
            let before = try Self.content(name, in: directory)
            let outcome = try self.write(before, name, directory)
            do {
                return try await body(outcome)
            } catch {
                // The daemon keeps its previous settings, and so must the file.
                if outcome.before != outcome.after { try self.restore(before, name, directory) }
                throw error
            }
        } catch {
            if made { _ = rmdir(self.place.directory) }
            throw error
        }
    }

    /// Opens the directory of the drop-ins. A new one gets the mode of its parent, so that the daemon's user may read it.
    private func directory() throws -> SafeDirectory {
        let parent = self.place.path.lastIndex(of: "/").map { "\(self.place.path[..<$0])/" } ?? "."
        do throws(FileError) {
            if FileStatus(path: self.place.directory) == nil {
                let mode = try SafeDirectory(path: parent, create: 0o755).status().mode & 0o777
                let directory = try SafeDirectory(path: self.place.directory, create: mode)
                guard fchmod(directory.descriptor, mode) == 0 else { throw FileError("set the permissions of", directory.path) }
                return directory
            }
            let directory = try SafeDirectory(path: self.place.directory)
            try directory.checkWritable()
            return directory
        } catch {
            throw self.refusal(error)
        }
    }

    private func refusal(_ error: FileError) -> any Error {
        guard error.code == EACCES || error.code == EPERM else { return error }
        return CommandFailure(
            .denied, "cannot \(self.words): not permitted to write \(self.place.directory.escapedForDisplay)",
            hint: "run the command as a user who may, such as root: sudo earshot config ...")
    }

    /// Removes what a killed command has left: no other command writes here while this one has the lock.
    private func removeParts(from directory: SafeDirectory) throws {
        for name in try directory.entries() where PartName.isOne(name) { try directory.remove(name) }
    }

    /// Returns the bytes of the drop-in; `nil` if there is none.
    private static func content(_ name: SafeName, in directory: SafeDirectory) throws -> [UInt8]? {
        guard let status = try directory.status(of: name) else { return nil }
        guard status.kind == .regular else {
            throw CommandFailure(.cannotCreate, "\(directory.subject(name).escapedForDisplay) is \(status.kind) and not changed")
        }
        guard let bytes = try directory.open(name).wholeContent(limit: Self.byteLimit) else {
            throw CommandFailure(.configuration, "\(directory.subject(name).escapedForDisplay) is larger than 1 MiB")
        }
        return bytes
    }

    private func write(_ before: [UInt8]?, _ name: SafeName, _ directory: SafeDirectory) throws -> Outcome {
        guard let text = before.map({ String(validating: $0, as: UTF8.self) }) ?? .some(nil) else {
            throw CommandFailure(.configuration, "\(directory.subject(name).escapedForDisplay) is not UTF-8; save it as UTF-8 text")
        }
        var changed = SettingsText(text)
        var missing: Set<String> = []
        for edit in self.edits {
            if let spelling = edit.spelling {
                changed.set(edit.name, spelling: spelling)
            } else if !changed.unset(edit.name) {
                missing.insert(edit.key)
            }
        }
        guard missing.count < self.edits.count else {
            return Outcome(files: try self.check(nil, directory), missing: missing, before: before, after: before)
        }
        let after = Array(changed.text.utf8)
        let file = try self.temporary(after, name, directory)
        let files = try self.check(file.file.descriptor, directory)
        _ = try file.publish(as: name, onConflict: .overwrite)
        return Outcome(files: files, missing: missing, before: before, after: after)
    }

    private func restore(_ before: [UInt8]?, _ name: SafeName, _ directory: SafeDirectory) throws {
        guard let before else {
            try directory.remove(name)
            return try directory.sync()
        }
        _ = try self.temporary(before, name, directory).publish(as: name, onConflict: .overwrite)
    }

    /// Returns a new file with the owner, group and mode of the drop-in, or else of the settings file.
    private func temporary(_ bytes: [UInt8], _ name: SafeName, _ directory: SafeDirectory) throws -> TemporaryFile {
        do throws(FileError) {
            let file = try TemporaryFile(in: directory, mode: 0o600)
            try file.file.write(bytes, at: 0)
            let model = if let own = try directory.status(of: name) { own } else { FileStatus(path: self.place.path) }
            if let model, model.kind == .regular {
                _ = fchown(file.file.descriptor, model.owner, model.group)
                try file.file.setMode(model.mode & 0o777)
            } else {
                try file.file.setMode(0o644)
            }
            return file
        } catch {
            throw self.refusal(error)
        }
    }

    /// Has `earshotd` check the settings with the candidate in place of the drop-in.
    private func check(_ candidate: CInt?, _ directory: SafeDirectory) throws(CommandFailure) -> ControlAPI.SettingList {
        do throws(CommandFailure) {
            return try FileCheck.run(self.place.path, candidate: candidate).value
        } catch {
            guard error.status == .configuration, let reason = error.message else { throw error }
            // The line is that of a file which does not exist.
            let prefix = "\(self.place.directory.escapedForDisplay)/\(Self.dropIn):"
            guard reason.hasPrefix(prefix) else {
                throw CommandFailure(
                    .configuration, "cannot \(self.words), because the settings have another error: \(reason)", hint: "correct it first")
            }
            let rest = reason.dropFirst(prefix.count).drop { $0 != ":" }.dropFirst(2)
            throw CommandFailure(.usage, "cannot \(self.words): \(rest)", code: "invalid-parameter")
        }
    }
}
