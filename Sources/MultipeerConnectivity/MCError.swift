public import Foundation

/// The domain of errors of this module, as `NSError` has it.
public let MCErrorDomain = "MCErrorDomain"

/// What went wrong.
public struct MCError: CustomNSError, Hashable, @unchecked Sendable {
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
    /// What is said beside the code, by the keys of `NSError`. The values are read, and never changed.
    public let userInfo: [String: Any]

    /// An error of that code.
    public init(_ code: Code, userInfo: [String: Any] = [:]) {
        self.code = code
        self.userInfo = userInfo
    }

    /// With what the other layer has said, in words.
    init(_ code: Code, _ reason: String?) {
        self.init(code, userInfo: reason.map { [NSLocalizedFailureReasonErrorKey: $0] } ?? [:])
    }

    /// ``MCErrorDomain``.
    public static var errorDomain: String { MCErrorDomain }
    /// The code's number.
    public var errorCode: Int { self.code.rawValue }
    /// ``userInfo``, with a description.
    public var errorUserInfo: [String: Any] { self.userInfo.merging([NSLocalizedDescriptionKey: self.localizedDescription]) { $1 } }

    /// The code, and in words what was wrong where that is known.
    public var localizedDescription: String {
        if let description = self.userInfo[NSLocalizedDescriptionKey] as? String { return description }
        return (self.userInfo[NSLocalizedFailureReasonErrorKey] as? String).map { "\(self.code): \($0)" } ?? "\(self.code)"
    }

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
