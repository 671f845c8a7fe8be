// node scripts/sim.mjs FROM COUNT [BUG|-] [--without LIST]: plays these seeds of the simulation on all processors, and prints what it
// found: seeds, commits, CPU time, and in how many seeds each kind of trouble happened.
// SIM_TRACE=1 prints every commit, SIM_SECONDS=60 stops after that time.
import { spawnSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import path from 'node:path'
import { buildSimulation } from '../test/sim/build.mjs'

const file = await buildSimulation()
const { status } = spawnSync(process.execPath, [file, ...process.argv.slice(2)], { stdio: 'inherit' })
rmSync(path.dirname(file), { recursive: true })
process.exit(status ?? 1)
