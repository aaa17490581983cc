// Apple's module exports Foundation: code that imports this one alone uses `Data`, `Progress` and the streams.
@_exported public import Foundation
