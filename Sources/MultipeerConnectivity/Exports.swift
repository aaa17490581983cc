// Apple's module exports Foundation. Code that imports only this module uses `Data`, `Progress` and the streams.
@_exported public import Foundation
