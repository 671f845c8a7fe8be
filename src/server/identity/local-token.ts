// The token of this machine: made at the first start, kept in a file that only its user can read, and used again.

import { randomBytes } from 'node:crypto'
import { chmod, mkdir, open, readFile, rename, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { ownFile } from '../../core/base/system/own-files.ts'
import { stateFolder } from '../../core/base/system/user-folders.ts'
import { atThisMachine, isOfThisMachine, SCOPES } from '../../doors/grant.ts'
import type { Principal } from '../../index.ts'
import { DefinitionError, InputError } from '../../index.ts'

/**
 * Who holds the token of this machine, or opens the Unix socket: its user, who may do everything. A model that calls over MCP with
 * this token does not speak for the user: it allows nothing.
 */
export const LOCAL_PRINCIPAL: Principal = atThisMachine(
  Object.freeze({ id: 'local', scopes: SCOPES.filter((scope) => scope !== 'approve:model'), sees: 'all' }),
)

/** Throws an InputError where somebody else has the id of the person at this machine: what is shared at this machine would be his. */
export function refuseLocalId(principal: Principal, where: string): Principal {
  if (principal.id !== LOCAL_PRINCIPAL.id || isOfThisMachine(principal)) return principal
  const message = `${where}: the id "${principal.id}" is the one of the person at this machine. Give another id.`
  throw new InputError('invalid_input', message)
}

/** The name of its row among the tokens. */
export const LOCAL_TOKEN_NAME = 'this machine'

/** Where it is kept: `$XDG_STATE_HOME/legate/serve.token`. */
export function localTokenFile(environment: Readonly<Record<string, string | undefined>> = process.env): string {
  return path.join(stateFolder(environment), 'serve.token')
}

/** Reads the token of this machine, or makes it. Two processes that start together end with one. */
export async function localToken(file: string = localTokenFile()): Promise<string> {
  await mkdir(path.dirname(file), { recursive: true, mode: 0o700 })
  ownFile(file, OWN)
  const made = newToken()
  try {
    const handle = await open(file, 'wx', 0o600)
    await handle.writeFile(`${made}\n`).finally(() => handle.close())
    ownFile(file, OWN)
    return made
  } catch (error) {
    if (Reflect.get(Object(error), 'code') !== 'EEXIST') throw error
    return readToken(file)
  }
}

/** Puts a new token into the file, in place of one that was revoked. */
export async function renewLocalToken(file: string = localTokenFile()): Promise<string> {
  const made = newToken()
  const beside = `${file}.${process.pid}.tmp`
  ownFile(beside, OWN)
  await writeFile(beside, `${made}\n`, { mode: 0o600, flag: 'wx' })
  await rename(beside, file)
  ownFile(file, OWN)
  return made
}

const OWN = 'the token of this machine'

function newToken(): string {
  return `lgt_${randomBytes(8).toString('hex')}_${randomBytes(32).toString('base64url')}`
}

async function readToken(file: string): Promise<string> {
  await chmod(file, 0o600)
  // Another process may be writing it.
  for (let tries = 0; tries < 20; tries++) {
    const token = (await readFile(file, 'utf8')).trim()
    if (/^lgt_[0-9a-f]{16}_[\w-]{43}$/.test(token)) return token
    await new Promise((resolve) => setTimeout(resolve, 25))
  }
  throw new DefinitionError('definition', `${file} holds no token. Delete it: the next start makes a new one.`)
}
