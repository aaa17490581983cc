public import Foundation

/// The domain of errors of this module, as `NSError` has it.
public let MCErrorDomain = "MCErrorDomain"

/// What went wrong.
public struct MCError: CustomNSError, Hashable, Sendable {
    /// Apple's codes.
    public enum Code: Int, Sendable, Hashable {
        case unknown = 0
        /// The peer is not in the session.
        case notConnected = 1
        /// A parameter is outside of its limits.
        case invalidParameter = 2
        /// What was asked for is not there.
        case unsupported = 3
        case timedOut = 4
        case cancelled = 5
        /// It cannot be done now, and perhaps later.
        case unavailable = 6
    }

    /// Which of them.
    public let code: Code
    /// What the other layer has said, in words.
    let reason: String?

    /// An error of that code.
    public init(_ code: Code) { self.init(code, nil) }

    init(_ code: Code, _ reason: String?) {
        self.code = code
        self.reason = reason
    }

    /// ``MCErrorDomain``.
    public static var errorDomain: String { MCErrorDomain }
    /// The code's number.
    public var errorCode: Int { self.code.rawValue }
    /// Its description.
    public var errorUserInfo: [String: Any] { [NSLocalizedDescriptionKey: self.localizedDescription] }

    /// The code, and in words what was wrong where that is known.
    public var localizedDescription: String { self.reason.map { "\(self.code): \($0)" } ?? "\(self.code)" }

    /// Equal by their codes.
    public static func == (one: Self, other: Self) -> Bool { one.code == other.code }
    /// By the code.
    public func hash(into hasher: inout Hasher) { hasher.combine(self.code) }

    /// ``Code/unknown``.
    public static var unknown: Code { .unknown }
    /// ``Code/notConnected``.
    public static var notConnected: Code { .notConnected }
    /// ``Code/invalidParameter``.
    public static var invalidParameter: Code { .invalidParameter }
    /// ``Code/unsupported``.
    public static var unsupported: Code { .unsupported }
    /// ``Code/timedOut``.
    public static var timedOut: Code { .timedOut }
    /// ``Code/cancelled``.
    public static var cancelled: Code { .cancelled }
    /// ``Code/unavailable``.
    public static var unavailable: Code { .unavailable }
}

extension MCError.Code {
    /// Lets `catch MCError.notConnected` be written.
    public static func ~= (code: Self, error: any Error) -> Bool { (error as? MCError)?.code == code }
}
