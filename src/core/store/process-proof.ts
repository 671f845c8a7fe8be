import { nodeFs, nodeOs } from '../base/node-system.ts'
import type { EngineRow } from '../graph/commit.ts'

export type ProcessProof = Pick<EngineRow, 'bootId' | 'pid' | 'processStart'>

/** Identifies this process on this machine since its boot; a pid alone is used again. */
export function proveSelf(): ProcessProof {
  self ??= { bootId: bootId(), pid: process.pid, processStart: startOf(statOf(process.pid)) ?? '' }
  return self
}

let self: ProcessProof | undefined

/**
 * True where there is evidence that the engine's process is gone: no process has its pid, another one has it, or it has ended and
 * is only remembered. False where that is unknown, as where /proc hides it or cannot be read: then only its lease counts.
 */
export function isProvenDead(engine: ProcessProof): boolean {
  if (!isKnownBoot(engine) || engine.bootId !== bootId()) return false
  const stat = statOf(engine.pid)
  if (stat === undefined) return hasNoProcess(engine.pid)
  return hasEnded(stat) || isAnother(engine, startOf(stat))
}

/** True where the very process still runs that proved itself so, as far as the system tells. */
export function isProvenAlive({ bootId: boot, pid, processStart }: ProcessProof): boolean {
  const stat = statOf(pid)
  return boot === bootId() && (startOf(stat) ?? '') === processStart && !(stat !== undefined && hasEnded(stat))
}

function isAnother({ processStart }: ProcessProof, found: string | undefined): boolean {
  return processStart !== '' && found !== undefined && found !== processStart
}

/** False where its machine does not tell which boot it is: then its pid means nothing to processes elsewhere. */
export function isKnownBoot({ bootId }: ProcessProof): boolean {
  return !bootId.endsWith(UNKNOWN)
}

/** True where no process has this pid. A signal needs no file, and is refused for a process of another user that is alive. */
export function hasNoProcess(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return false
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'ESRCH'
  }
}

const UNKNOWN = '/unknown'
let knownBootId: string | undefined

/** Boot and pid namespace: containers on one host share the first and not the second. */
function bootId(): string {
  knownBootId ??= readBootId()
  return knownBootId
}

function readBootId(): string {
  try {
    const boot = nodeFs.readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
    return `${boot}/${nodeFs.readlinkSync('/proc/self/ns/pid')}`
  } catch {
    return `${nodeOs().hostname()}${UNKNOWN}`
  }
}

type Stat = readonly string[]

/** The fields of /proc/PID/stat from the third one, the state; the command before it may hold spaces and parentheses. */
function statOf(pid: number): Stat | undefined {
  try {
    const stat = nodeFs.readFileSync(`/proc/${pid}/stat`, 'utf8')
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  } catch {
    return undefined
  }
}

/** A process that has ended is remembered until its parent has heard of it. */
function hasEnded([state]: Stat): boolean {
  return state === 'Z' || state === 'X'
}

/** Field 22: when it started, in ticks since the boot. */
function startOf(stat: Stat | undefined): string | undefined {
  const start = stat?.[19]
  return start !== undefined && /^\d+$/.test(start) ? start : undefined
}
