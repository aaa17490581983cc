internal import Glibc

/// The arguments of a process as the kernel gave them: bytes, of which a `String` would quietly make something else where they are no
/// UTF-8. Another message, name or path than was meant must not be used.
package enum ArgumentText {
    /// What is wrong with the arguments, the command's name left out, as a sentence; `nil` where all of them are UTF-8.
    package static func fault(in arguments: [[UInt8]] = Self.ofProcess) -> String? {
        for (index, argument) in arguments.enumerated() where String(validating: argument, as: UTF8.self) == nil {
            return "argument \(index + 1) is not valid UTF-8: \(String(decoding: argument, as: UTF8.self).escapedForDisplay)"
        }
        return nil
    }

    /// This process's arguments behind its name.
    package static var ofProcess: [[UInt8]] {
        UnsafeBufferPointer(start: CommandLine.unsafeArgv, count: Int(CommandLine.argc)).dropFirst().map { argument in
            guard let argument else { return [] }
            return Array(UnsafeRawBufferPointer(start: argument, count: strlen(argument)))
        }
    }
}
