#!/bin/bash
echo milk >>/app/notes.txt
