#!/usr/bin/env node
import "../dist/underpass.js";
