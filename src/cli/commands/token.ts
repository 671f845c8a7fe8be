import { readFileSync } from 'node:fs'
import { parseJson } from '../../core/base/json.ts'
import { checkPrincipal, SCOPES, type Scope, type TokenInfo } from '../../doors/grant.ts'
import type { Json, Principal } from '../../index.ts'
import { type Call, CliError, EXIT, isSet, listOption, textOption } from '../command/command.ts'
import { legate } from '../command/next-command.ts'
import { oneToken } from '../desk/token-desk.ts'
import { withTokens } from '../store/open-desk.ts'
import { age, moment, plural } from '../terminal/amounts.ts'
import { oneLine } from '../terminal/clean.ts'
import { jsonLine, note, write } from '../terminal/output.ts'
import { pad, widthOf } from '../terminal/width.ts'
import { timeOf } from './change/time.ts'

/** Enough for a program that starts runs and looks at them. Whoever starts a run does not allow what it asks for. */
const USUAL: readonly Scope[] = ['start', 'read', 'cancel']

/** Makes, lists and revokes tokens. */
export function token(call: Call): Promise<number> {
  const [what = '', ...rest] = call.words
  const act = ACTS[what]
  if (act !== undefined && rest.length === act.takes) return act.run(call, rest[0] ?? '')
  throw new CliError(
    `${legate('token add NAME')}, ${legate('token list')}, or ${legate('token revoke ID')}.`,
    EXIT.usage,
  )
}

interface TokenAct {
  readonly takes: number
  readonly run: (call: Call, word: string) => Promise<number>
}

const ACTS: Readonly<Record<string, TokenAct | undefined>> = {
  add: { takes: 1, run: add },
  list: { takes: 0, run: list },
  revoke: { takes: 1, run: revoke },
}

async function add(call: Call, name: string): Promise<number> {
  const principal = readPrincipal(call, name)
  const lasts = timeOf('expires', textOption(call, 'expires'))
  const expiresAt = lasts === undefined ? null : Date.now() + lasts
  checkPrincipal(principal, 'token')
  return withTokens(call, 'make', async (tokens) => {
    const made = await tokens.add({ name, principal, expiresAt, within: textOption(call, 'within') ?? null })
    if (isSet(call, 'json')) await write(jsonLine(made))
    else {
      await write(`${made.token}\n`)
      note(
        `Keep it: it is not shown again. ${oneLine(name)} may ${made.info.principal.scopes.join(', ')}${untilText(made.info)}.`,
      )
    }
    return EXIT.completed
  })
}

function untilText({ expiresAt }: TokenInfo): string {
  return expiresAt === null ? '' : `, until ${moment(expiresAt)}`
}

function readPrincipal(call: Call, id: string): Principal {
  const scopes = textOption(call, 'scopes')
  const agents = listOption(call, 'agents').flatMap(wordsIn)
  const grant = readGrant(call)
  const budget = readNumbers(call, 'budget')
  const perDay = readNumbers(call, 'per-day')
  const sees = textOption(call, 'sees')
  return {
    id,
    scopes: scopes === undefined ? USUAL : wordsIn(scopes).map(readScope),
    ...(agents.length === 0 ? {} : { agents }),
    ...(grant === undefined ? {} : { grant: grant as NonNullable<Principal['grant']> }),
    ...(budget === undefined ? {} : { budget: budget as NonNullable<Principal['budget']> }),
    ...(perDay === undefined ? {} : { perDay }),
    ...(sees === undefined ? {} : { sees: sees === 'own' || sees === 'all' ? sees : wordsIn(sees) }),
  }
}

function readScope(word: string): Scope {
  const scope = SCOPES.find((one) => one === word)
  if (scope !== undefined) return scope
  throw new CliError(`"${oneLine(word)}" is no scope. There are: ${SCOPES.join(', ')}.`, EXIT.usage)
}

function wordsIn(text: string): string[] {
  return text
    .split(',')
    .map((word) => word.trim())
    .filter((word) => word !== '')
}

/** Reads `--grant FILE`, a JSON object of use, ask, free and deny, and adds what `--grant-deny` names. */
function readGrant(call: Call): object | undefined {
  const file = textOption(call, 'grant')
  const denied = listOption(call, 'grant-deny')
  const grant = file === undefined ? undefined : readGrantFile(file)
  if (denied.length === 0) return grant
  const known: unknown = Reflect.get(grant ?? {}, 'deny')
  return { ...grant, deny: [...(Array.isArray(known) ? (known as string[]) : []), ...denied] }
}

function readGrantFile(file: string): object {
  const parsed = parseJson(readText(file))
  const value: Json = parsed.ok ? parsed.value : null
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value
  const message = `${oneLine(file)} is not a JSON object of use, ask, free and deny, such as {"deny":["exec:*"]}.`
  throw new CliError(message, EXIT.usage, { namesHelp: false })
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    throw new CliError(`Cannot read ${oneLine(file)}. --grant is a JSON file.`, EXIT.usage, { namesHelp: false })
  }
}

/** Reads limits such as `usd=5,runs=100`. */
function readNumbers(call: Call, name: string): Readonly<Record<string, number>> | undefined {
  const text = textOption(call, name)
  if (text === undefined) return undefined
  const read = wordsIn(text).map((word) => /^([a-zA-Z]+)=(\d{1,15}(?:\.\d{1,9})?)$/.exec(word))
  if (read.length > 0 && read.every((one) => one !== null)) {
    return Object.fromEntries(read.map(([, key = '', value = '']) => [key, Number(value)]))
  }
  throw new CliError(`--${name} is a list of limits, such as usd=5,tokens=200000.`, EXIT.usage)
}

function list(call: Call): Promise<number> {
  return withTokens(call, 'read', async (tokens) => {
    const all = await tokens.list()
    if (isSet(call, 'json')) for (const one of all) await write(jsonLine(one))
    else await write(all.length === 0 ? `There are no tokens. Make one: ${legate('token add NAME')}\n` : table(all))
    return EXIT.completed
  })
}

const TITLES = ['ID', 'NAME', 'OWNER', 'ENDS', 'USED', 'SCOPES']

function table(tokens: readonly TokenInfo[]): string {
  const rows = [TITLES, ...tokens.map(cellsOf)]
  const widths = TITLES.map((_, at) => Math.max(...rows.map((row) => widthOf(row[at] ?? ''))))
  return rows
    .map(
      (row) =>
        `${row
          .map((cell, at) => pad(cell, widths[at] ?? 0))
          .join('  ')
          .trimEnd()}\n`,
    )
    .join('')
}

function cellsOf({ id, name, principal, expiresAt, lastUsedAt }: TokenInfo): string[] {
  const now = Date.now()
  const ends = expiresAt === null ? 'never' : expiresAt <= now ? 'ended' : moment(expiresAt)
  const used = lastUsedAt === null ? 'never' : `${age(now - lastUsedAt)} ago`
  return [id, oneLine(name), oneLine(principal.id), ends, used, principal.scopes.join(',')]
}

function revoke(call: Call, typed: string): Promise<number> {
  return withTokens(call, 'write', async (tokens) => {
    const { id } = oneToken(await tokens.list(), typed)
    const gone = await tokens.revoke(id, isSet(call, 'cancel'))
    if (isSet(call, 'json')) await write(jsonLine(gone))
    else await write(`Revoked: ${gone.revoked.join(', ')}${cancelledText(gone.cancelled, isSet(call, 'cancel'))}.\n`)
    return EXIT.completed
  })
}

function cancelledText(cancelled: readonly string[], isAsked: boolean): string {
  return isAsked ? `, and ${plural(cancelled.length, 'run')} asked to stop` : '. Open runs go on'
}
