import { nodeFs, nodeOs } from '../base/node-system.ts'
import type { EngineRow } from '../graph/commit.ts'

export type ProcessProof = Pick<EngineRow, 'bootId' | 'pid' | 'processStart'>

/** Identifies this process on this machine since its boot; a pid alone is used again. */
export function proveSelf(): ProcessProof {
  self ??= { bootId: bootId(), pid: process.pid, processStart: processStart(process.pid) ?? '' }
  return self
}

let self: ProcessProof | undefined

/** True where the engine's process is certainly gone. False where that is unknown: then only its lease counts. */
export function isProvenDead(engine: ProcessProof): boolean {
  if (engine.processStart === '' || engine.bootId !== bootId()) return false
  return processStart(engine.pid) !== engine.processStart
}

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
    return `${nodeOs().hostname()}/unknown`
  }
}

/** Field 22 of /proc/PID/stat; the command before it may hold spaces and parentheses. */
function processStart(pid: number): string | undefined {
  try {
    const stat = nodeFs.readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    if (fields[0] === 'Z' || fields[0] === 'X') return undefined
    return fields[19]
  } catch {
    return undefined
  }
}
