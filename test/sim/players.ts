// Shares seeds out among processes, and joins what they report.

import { execFile } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { promisify } from 'node:util'
import type { Happening } from './world.ts'

export interface Failure {
  readonly seed: number
  readonly law: string
  /** The command that plays it again, without what is not needed. */
  readonly repeat: string
  readonly without: readonly number[]
}

export interface Report {
  readonly seeds: number
  readonly commits: number
  readonly recoveries: number
  readonly moments: number
  readonly ms: number
  readonly cpuMs: number
  /** The same for the same seeds, in whatever order and by whatever process they were played. */
  readonly mark: number
  /** In how many seeds it happened. */
  readonly shares: Partial<Record<Happening, number>>
  readonly failure?: Failure | undefined
}

/** Every seed leaves garbage behind, and all processors play. */
const FLAGS = ['--max-semi-space-size=64', '--single-threaded-gc']
/** A process takes some seconds until its code is compiled: fewer seeds are not worth another one. */
const FEWEST = 500

/** Plays so many seeds, in as many processes as there are processors. */
export async function playAll(from: number, count: number): Promise<Report> {
  const players = Math.max(1, Math.min(availableParallelism(), Math.floor(count / FEWEST)))
  const share = Math.ceil(count / players)
  const parts = Array.from({ length: players }, (_, at) => {
    const first = from + at * share
    return playPart(first, Math.min(share, from + count - first))
  })
  return (await Promise.all(parts)).reduce(joined)
}

async function playPart(from: number, count: number): Promise<Report> {
  const args = [...FLAGS, process.argv[1] ?? '', `${from}`, `${count}`, '--part']
  const { stdout } = await promisify(execFile)(process.execPath, args, { maxBuffer: 10_000_000 })
  return JSON.parse(stdout) as Report
}

function joined(a: Report, b: Report): Report {
  const names = [...new Set([...Object.keys(a.shares), ...Object.keys(b.shares)])] as Happening[]
  return {
    seeds: a.seeds + b.seeds,
    commits: a.commits + b.commits,
    recoveries: a.recoveries + b.recoveries,
    moments: a.moments + b.moments,
    ms: Math.max(a.ms, b.ms),
    cpuMs: a.cpuMs + b.cpuMs,
    mark: (a.mark ^ b.mark) >>> 0,
    shares: Object.fromEntries(names.map((name) => [name, (a.shares[name] ?? 0) + (b.shares[name] ?? 0)])),
    failure: a.failure ?? b.failure,
  }
}
