#!/bin/bash
[ "$(cat /app/notes.txt)" = "bread
milk" ] && echo 1 >/logs/verifier/reward.txt || echo 0 >/logs/verifier/reward.txt
