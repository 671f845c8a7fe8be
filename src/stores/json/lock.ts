import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync, renameSync, unlinkSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { StoreError } from '../../core/base/error.ts'
import { parseJson } from '../../core/base/json.ts'
import { systemErrorCode } from '../../core/store/file-presence.ts'
import {
  hasNoProcess,
  isKnownBoot,
  isProvenDead,
  type ProcessProof,
  proveSelf,
} from '../../core/store/process-proof.ts'

const PREFIX = 'store.lock-'
const ATTEMPTS = 8

interface Owner extends ProcessProof {
  readonly host: string
}

/**
 * Locks the folder for this store, or throws `store_busy` naming the process that has it. Gives a function that unlocks it.
 *
 * Every process puts down a file of its own and then looks for others: of two that come at once at least one sees the other,
 * and whoever sees another that may be alive takes its own away. Names are never used twice, so anybody can remove the file of
 * a dead process at any time.
 */
export function lockFolder(folder: string): () => void {
  for (let attempt = 1; ; attempt++) {
    const own = putDown(folder)
    const takeAway = () => remove(join(folder, own))
    const other = orElse(takeAway, () => otherOwner(folder, own))
    if (other === undefined) return takeAway
    takeAway()
    if (attempt >= ATTEMPTS) throw busy(folder, other)
    pause(2 + Math.random() * 3 * attempt)
  }
}

function orElse<T>(undo: () => void, use: () => T): T {
  try {
    return use()
  } catch (error) {
    undo()
    throw error
  }
}

/** Puts the file down with its whole content at once. */
function putDown(folder: string): string {
  const name = `${PREFIX}${process.pid}-${randomBytes(6).toString('hex')}`
  const owner: Owner = { host: hostname(), ...proveSelf() }
  writeFileSync(join(folder, `${name}.new`), JSON.stringify(owner), { mode: 0o600, flag: 'wx' })
  renameSync(join(folder, `${name}.new`), join(folder, name))
  return name
}

interface OtherOwner {
  readonly file: string
  readonly owner: Owner | undefined
}

/** The file of another process that may be alive. Removes the files of dead ones on the way. */
function otherOwner(folder: string, own: string): OtherOwner | undefined {
  let found: OtherOwner | undefined
  for (const name of readdirSync(folder)) {
    if (!name.startsWith(PREFIX) || name === own || name.endsWith('.new')) continue
    const file = join(folder, name)
    const owner = readOwner(file)
    if (owner === 'gone') continue
    if (owner !== undefined && isGone(owner)) remove(file)
    else found = { file, owner }
  }
  return found
}

/** Undefined when the file does not tell its owner, or we may not read it: then nothing is known about it. */
function readOwner(file: string): Owner | undefined | 'gone' {
  try {
    const read = parseJson(readFileSync(file, 'utf8'))
    const owner = (read.ok ? read.value : null) as Partial<Owner> | null
    const isWhole = typeof owner?.pid === 'number' && typeof owner.bootId === 'string'
    return isWhole ? { host: '', processStart: '', pid: 0, bootId: '', ...owner } : undefined
  } catch (error) {
    return systemErrorCode(error) === 'ENOENT' ? 'gone' : undefined
  }
}

/** True where its process is certainly gone. One of another machine or container cannot be checked from here. */
function isGone(owner: Owner): boolean {
  if (owner.host !== hostname()) return false
  const self = proveSelf()
  if (isKnownBoot(owner) && isKnownBoot(self) && bootOf(owner) !== bootOf(self)) return true
  if (isProvenDead(owner)) return true
  // Without /proc there are no containers either: the host's name tells where the pid counts.
  return !isKnownBoot(owner) && owner.bootId === self.bootId && hasNoProcess(owner.pid)
}

/** The machine's boot, without the container. */
function bootOf({ bootId }: ProcessProof): string {
  return bootId.split('/')[0] ?? ''
}

function remove(file: string): void {
  try {
    unlinkSync(file)
  } catch (error) {
    if (systemErrorCode(error) !== 'ENOENT') throw error
  }
}

function busy(folder: string, { file, owner }: OtherOwner): StoreError {
  const details = { path: folder, lock: file, pid: owner?.pid ?? null, host: owner?.host ?? null }
  const isOwn = owner?.pid === process.pid && owner.host === hostname()
  const who = isOwn ? 'this very process' : owner === undefined ? 'another process' : nameOf(owner)
  const advice = isOwn
    ? 'Close that store first, or use it.'
    : `Close it there, or use sqliteStore() for several processes. If that process is gone, delete ${file}.`
  return new StoreError('store_busy', `The JSON store in ${folder} is open in ${who}. ${advice}`, { details })
}

function nameOf({ pid, host }: Owner): string {
  return host === hostname() ? `process ${pid}` : `process ${pid} on ${host}`
}

function pause(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}
