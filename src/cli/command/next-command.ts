// Commands that a person is shown to type next. Each of them names the store or the server that the command which shows it was
// told to use.
//
// Owns:      what the person must type to reach that place again. A process runs one command, so there is one such place.
// Called by: every file of `cli` that shows a command. A test finds those that write one without it.
// Must stay true:
//   - No secret is shown: TOKEN and PASSWORD stand for what the person typed.
//   - What the environment says is not said again: it holds for the next command too.

import { type Call, isRemote, isStoreless, textOption } from './command.ts'

let place: Place = { remote: '', local: '' }
let names: ReadonlySet<string> = new Set()

/** The options that lead to the store or the server: of commands that can use a server, and of those that cannot. */
interface Place {
  readonly remote: string
  readonly local: string
}

/** Takes the place of this call for all commands that are shown from now on. */
export function setNextPlace(call: Call): void {
  place = placeOf(call)
  names = new Set(call.commands.map(({ name }) => name))
}

/** Takes a store by its address: nobody named it on the command line, or the next command is typed in another folder. */
export function setNextStore(address: string | undefined): void {
  const option = address === undefined ? '' : storeOption(address)
  place = { remote: option, local: option }
}

/** Writes a command: `legate show 1f0c9a2e --store runs.db`. Only the machine of a store repairs the store. */
export function legate(words: string): string {
  const [name = ''] = words.split(' ', 1)
  return `legate ${words}${words.includes(' --repair') ? place.local : optionsFor(name)}`
}

/** A command, with the id and the digest that may follow the name. */
const COMMAND = /\blegate ([a-z]+)\b(?: [0-9a-f]{8}(?:-[0-9a-f-]{27})?(?![\w-]))?(?: --seen \w+)?/g
const PLACED = /^ --(?:store|server)\b/

/** Completes the commands in a text that was not written here. */
export function withPlaces(text: string): string {
  return text.replaceAll(COMMAND, (found: string, name: string, at: number) => {
    const isPlaced = PLACED.test(text.slice(at + found.length))
    return isPlaced || !names.has(name) ? found : found + optionsFor(name)
  })
}

function optionsFor(name: string): string {
  if (isStoreless(name)) return ''
  return isRemote(name) ? place.remote : place.local
}

function placeOf(call: Call): Place {
  const store = textOption(call, 'store')
  if (store !== undefined) return { remote: storeOption(store), local: storeOption(store) }
  const server = textOption(call, 'server')
  const remote = server === undefined ? '' : ` --server ${shellWord(withoutToken(server))}${tokenOption(call, server)}`
  const usesServer = server !== undefined || (call.env['LEGATE_SERVER'] ?? '') !== ''
  return { remote, local: usesServer ? ' --store STORE-OF-SERVER' : '' }
}

function storeOption(store: string): string {
  return ` --store ${shellWord(withoutPassword(store))}`
}

/** Without one, the token is in the environment, or there is none. */
function tokenOption(call: Call, server: string): string {
  return textOption(call, 'token') !== undefined || server.includes('#') ? ' --token TOKEN' : ''
}

/** The address of a server as others may see it. */
function withoutToken(server: string): string {
  return server.replace(/\/?#.*$/, '')
}

const DATABASE = /^postgres(?:ql)?:\/\//

function withoutPassword(store: string): string {
  if (!DATABASE.test(store)) return store
  if (!URL.canParse(store)) return 'STORE'
  const url = new URL(store)
  if (url.password !== '') url.password = 'PASSWORD'
  if (url.searchParams.has('password')) url.searchParams.set('password', 'PASSWORD')
  return url.href
}

/** Quotes a word of a command if the shell would interpret it. */
export function shellWord(word: string): string {
  return /^[\w./@:+-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`
}
