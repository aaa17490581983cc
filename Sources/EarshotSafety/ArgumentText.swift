internal import Glibc

/// The arguments of a process as raw bytes. A `String` silently replaces invalid UTF-8, which would yield a message, name or path that the
/// user did not mean.
package enum ArgumentText {
    /// Returns the fault in the arguments without the command's name, as a sentence; `nil` if all are valid UTF-8.
    package static func fault(in arguments: [[UInt8]] = Self.ofProcess) -> String? {
        for (index, argument) in arguments.enumerated() where String(validating: argument, as: UTF8.self) == nil {
            return "argument \(index + 1) is not valid UTF-8: \(String(decoding: argument, as: UTF8.self).escapedForDisplay)"
        }
        return nil
    }

    /// The arguments of this process after its name.
    package static var ofProcess: [[UInt8]] {
        UnsafeBufferPointer(start: CommandLine.unsafeArgv, count: Int(CommandLine.argc)).dropFirst().map { argument in
            guard let argument else { return [] }
            return Array(UnsafeRawBufferPointer(start: argument, count: strlen(argument)))
        }
    }
}
