"""The desktop as the computer of every agent SDK: one package for each provider, with the same names in each.

    decode(payload, viewport) -> call       a `ProviderCall`: what it asks for, as actions in screen pixels
    encode(result) -> payload               what it is answered
    encode_call, decode_result              the same two, the other way round
    declare(desktop) -> declaration         what a request to the provider lists as its tool
    run(desktop, payload) -> payload        one call: decode, perform, encode
    respond(desktop, response)              all calls of what an SDK's client returned
    tool(desktop)                           the object that an SDK's agent or loop takes among its tools

`protocol.py` says which of them every package has, and what else has the same name in several. `decode` and `encode` are pure
and need no SDK; they are in `wire.py` of each package. What needs the SDK is in a file beside it, and is imported when it is
asked for: importing `deskhand` or this package pulls in none.
"""
