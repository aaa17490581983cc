public import Foundation

/// The domain of this module's errors for `NSError`.
public let MCErrorDomain = "MCErrorDomain"

/// An error of this module.
public struct MCError: CustomNSError, Hashable, @unchecked Sendable {
    /// Apple's codes.
    public enum Code: Int, Sendable, Hashable {
        case unknown = 0
        /// The peer is not in the session.
        case notConnected = 1
        /// A parameter is outside of its limits.
        case invalidParameter = 2
        /// The requested object does not exist.
        case unsupported = 3
        case timedOut = 4
        case cancelled = 5
        /// The operation cannot be performed now, but perhaps later.
        case unavailable = 6
    }

    /// The code of the error.
    public let code: Code
    /// Additional information, with the keys of `NSError`. The values are never changed.
    public let userInfo: [String: Any]

    /// Creates an error with this code.
    public init(_ code: Code, userInfo: [String: Any] = [:]) {
        self.code = code
        self.userInfo = userInfo
    }

    /// Creates an error with a reason from the underlying layer.
    init(_ code: Code, _ reason: String?) {
        self.init(code, userInfo: reason.map { [NSLocalizedFailureReasonErrorKey: $0] } ?? [:])
    }

    /// ``MCErrorDomain``.
    public static var errorDomain: String { MCErrorDomain }
    /// The code's number.
    public var errorCode: Int { self.code.rawValue }
    /// ``userInfo``, with a description.
    public var errorUserInfo: [String: Any] { self.userInfo.merging([NSLocalizedDescriptionKey: self.localizedDescription]) { $1 } }

    /// The code, and the reason if it is known.
    public var localizedDescription: String {
        if let description = self.userInfo[NSLocalizedDescriptionKey] as? String { return description }
        return (self.userInfo[NSLocalizedFailureReasonErrorKey] as? String).map { "\(self.code): \($0)" } ?? "\(self.code)"
    }

    /// Compares the codes.
    public static func == (one: Self, other: Self) -> Bool { one.code == other.code }
    /// Hashes the code.
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
    /// Supports `catch MCError.notConnected`.
    public static func ~= (code: Self, error: any Error) -> Bool { (error as? MCError)?.code == code }
}
