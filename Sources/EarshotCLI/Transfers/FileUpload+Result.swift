import EarshotClient
import EarshotSafety

extension FileUpload {
    /// The outcome of a file for one recipient.
    struct Result: Sendable {
        let recipient: String
        /// The resource's row, if there is one.
        let resource: ControlAPI.Resource?
        let status: ExitStatus
        /// The reason of the failure, escaped.
        let failure: CommandFailure?
        /// Whether the file is queued in the daemon.
        let isWaiting: Bool

        init(_ resource: ControlAPI.Resource, mayWait: Bool) {
            self.recipient = resource.peerName
            self.resource = resource
            self.isWaiting = mayWait && !resource.isOver
            switch resource.state {
            case .known(.completed): self.failure = nil
            case .known(.cancelled):
                self.failure = CommandFailure(code: .known(.cancelled), message: resource.error?.message ?? "it was cancelled")
            case .known(.offered) where mayWait, .known(.transferring) where mayWait, .known(.paused) where mayWait: self.failure = nil
            case .known(.failed), .known(.offered), .known(.transferring), .known(.paused), .unknown:
                self.failure = CommandFailure(
                    code: resource.error?.code, message: resource.error?.message ?? "it is \(resource.state.rawValue)",
                    peer: resource.peerName)
            }
            self.status = self.failure?.status ?? .done
        }

        init(recipient: String, failure: CommandFailure) {
            self.recipient = recipient
            self.resource = nil
            self.failure = failure
            self.status = failure.status
            self.isWaiting = false
        }

        /// Reports the result on standard error: failures and queued files always, success only on a terminal.
        func tell(file: String) {
            let (file, recipient) = (file.escapedForDisplay, self.recipient.escapedForDisplay)
            if let failure = self.failure {
                Standard.note("cannot send \(file) to \(recipient): \(failure.message ?? "")")
                if let hint = failure.hint { Standard.say(hint) }
            } else if self.isWaiting {
                Standard.note("\(file) is queued for \(recipient)")
            } else if Terminal.isError {
                Standard.note("sent \(file) to \(recipient)")
            }
        }
    }
}
