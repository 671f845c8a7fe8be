// node main.mjs FROM COUNT [BUG|-] [--without LIST]: plays so many seeds and prints what it found as one line of JSON.
// node main.mjs FROM COUNT each: the same for each planted defect, one line each, and whether its line repeats it.

import { BUGS, type Bug } from './process.ts'
import { minimise, rehearse, simulate } from './simulate.ts'

interface Failure {
  readonly seed: number
  readonly law: string
  /** The command that plays it again, without what is not needed. */
  readonly repeat: string
  readonly without: readonly number[]
}

const seconds = Number(process.env['SIM_SECONDS'] ?? Number.POSITIVE_INFINITY)
const [from = '1', count = '1', bug = '-', , list = ''] = process.argv.slice(2)
const without = list === '' ? [] : list.split(',').map(Number)

// Many errors are part of the stories, and nobody reads where they were made.
Error.stackTraceLimit = 0
await rehearse()
if (bug === 'each') for (const one of BUGS) await printDefect(one)
else print(await play(BUGS.find((one) => one === bug)))
process.exit(0)

async function play(planted: Bug | undefined) {
  const cpu = process.cpuUsage()
  const began = performance.now()
  const sums = { seeds: 0, commits: 0, recoveries: 0, moments: 0 }
  let failure: Failure | undefined
  for (let seed = Number(from); seed < Number(from) + Number(count) && failure === undefined; seed++) {
    const { broken, commits, recoveries, moments } = await simulate(seed, { bug: planted, without })
    sums.seeds++
    sums.commits += commits
    sums.recoveries += recoveries
    sums.moments += moments
    if (broken !== undefined) failure = await describe(seed, broken, planted)
    if (performance.now() - began > seconds * 1_000) break
  }
  const { user, system } = process.cpuUsage(cpu)
  const perCpuSecond = Math.round((sums.seeds / (user + system)) * 1_000_000)
  return { ...sums, ms: Math.round(performance.now() - began), perCpuSecond, failure }
}

async function describe(seed: number, law: string, planted: Bug | undefined): Promise<Failure> {
  const left = without.length > 0 ? without : await minimise(seed, planted)
  const rest = left.length === 0 ? '' : ` --without ${left.join(',')}`
  return { seed, law, repeat: `node scripts/sim.mjs ${seed} 1 ${planted ?? '-'}${rest}`, without: left }
}

/** A defect counts as found where its line repeats it, and the same seed is healthy without it. */
async function printDefect(planted: Bug): Promise<void> {
  const { failure, ...sums } = await play(planted)
  const again = failure && (await simulate(failure.seed, { bug: planted, without: failure.without }))
  const healthy = failure && (await simulate(failure.seed))
  print({ bug: planted, ...sums, failure, again: again?.broken, healthy: healthy?.broken ?? null })
}

function print(found: object): void {
  process.stdout.write(`${JSON.stringify(found)}\n`)
}
