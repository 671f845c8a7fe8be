// node main.mjs FROM COUNT [BUG|-] [--without LIST] [--backwards]: plays so many seeds and prints what it found as one line of JSON.
// node main.mjs FROM COUNT each: the same for each planted defect, one line each, and whether its line repeats it.

import { parseArgs } from 'node:util'
import { type Failure, playAll, type Report } from './players.ts'
import { BUGS, type Bug } from './process.ts'
import { minimise, rehearse, simulate } from './simulate.ts'
import type { Happening } from './world.ts'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { without: { type: 'string' }, backwards: { type: 'boolean' }, part: { type: 'boolean' } },
})
const [first = '1', count = '1', bug = '-'] = positionals
const without = values.without?.split(',').map(Number) ?? []
const seconds = Number(process.env['SIM_SECONDS'] ?? Number.POSITIVE_INFINITY)
const isPart = values.part === true || values.backwards === true || Number(count) === 1

// Many errors are part of the stories, and nobody reads where they were made.
Error.stackTraceLimit = 0
if (bug === '-' && !isPart) print(await playAll(Number(first), Number(count)))
else await playHere()
process.exit(0)

async function playHere(): Promise<void> {
  await rehearse()
  if (bug === 'each') for (const one of BUGS) await printDefect(one)
  else print(await play(BUGS.find((one) => one === bug)))
}

async function play(planted: Bug | undefined): Promise<Report> {
  const cpu = process.cpuUsage()
  const began = performance.now()
  const sums = { seeds: 0, commits: 0, recoveries: 0, moments: 0, mark: 0 }
  const shares: Partial<Record<Happening, number>> = {}
  let failure: Failure | undefined
  for (let at = 0; at < Number(count) && failure === undefined; at++) {
    const seed = Number(first) + (values.backwards === true ? Number(count) - 1 - at : at)
    const { broken, commits, recoveries, moments, mark, happened } = await simulate(seed, { bug: planted, without })
    sums.seeds++
    sums.commits += commits
    sums.recoveries += recoveries
    sums.moments += moments
    sums.mark = (sums.mark ^ mark) >>> 0
    for (const one of happened) shares[one] = (shares[one] ?? 0) + 1
    if (broken !== undefined) failure = await describe(seed, broken, planted)
    if (performance.now() - began > seconds * 1_000) break
  }
  const { user, system } = process.cpuUsage(cpu)
  const ms = Math.round(performance.now() - began)
  return { ...sums, ms, cpuMs: Math.round((user + system) / 1_000), shares, failure }
}

async function describe(seed: number, law: string, planted: Bug | undefined): Promise<Failure> {
  const left = without.length > 0 ? without : await minimise(seed, planted)
  const rest = left.length === 0 ? '' : ` --without ${left.join(',')}`
  return { seed, law, repeat: `node scripts/sim.mjs ${seed} 1 ${planted ?? '-'}${rest}`, without: left }
}

/** A defect counts as found where its line repeats it, and the same seed is healthy without it. */
async function printDefect(planted: Bug): Promise<void> {
  const { failure, seeds } = await play(planted)
  const again = failure && (await simulate(failure.seed, { bug: planted, without: failure.without }))
  const healthy = failure && (await simulate(failure.seed))
  print({ bug: planted, seeds, failure, again: again?.broken, healthy: healthy?.broken ?? null })
}

function print(found: object): void {
  process.stdout.write(`${JSON.stringify(found)}\n`)
}
