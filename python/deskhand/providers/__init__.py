"""The desktop as the computer tool of every agent SDK: one package for each provider, with the same names in each.

    decode(payload, viewport) -> call       a `ProviderCall`: the actions of a call, in screen pixels
    encode(result) -> payload               the answer to a call
    encode_call, decode_result              the inverses of these two
    declare(desktop) -> declaration         the tool, as a request to the provider lists it
    run(desktop, payload) -> payload        one call: decode, perform, encode
    respond(desktop, response)              all calls of a response of an SDK's client
    tool(desktop)                           an object for the tools of an SDK's agent or loop

`protocol.py` says which of them every package has, and which further names several packages share. `decode` and `encode` are
pure and need no SDK; they are in `wire.py` of each package. Code that needs the SDK is in a file beside it and is imported on
first use: importing `deskhand` or this package imports no SDK.
"""
