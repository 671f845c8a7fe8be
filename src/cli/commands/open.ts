import { readFile } from 'node:fs/promises'
import { localTokenFile } from '../../server/index.ts'
import { type Call, CliError, EXIT, isSet } from '../command/command.ts'
import { legate } from '../command/next-command.ts'
import { openBrowser } from '../serve/open-browser.ts'
import { type FoundServer, findServer, isLocalAddress, withToken, writeLeadingPage } from '../serve/serve-file.ts'
import { findRunOrNode } from '../store/find-run.ts'
import { shownStore, withRuntime } from '../store/open-store.ts'
import { note, write } from '../terminal/output.ts'

/** Opens the page of the store's server, at one run if it is named, and prints its address. */
export async function open(call: Call): Promise<number> {
  const [ending] = call.words
  const server = findServer(shownStore(call), call.env)
  if (server === undefined) {
    const message = `No server of this store runs on this machine. Start one: ${legate('serve')}.`
    throw new CliError(message, EXIT.other, { namesHelp: false })
  }
  const run =
    ending === undefined ? undefined : await withRuntime(call, 'read', ({ store }) => findRunOrNode(store, ending))
  const isSocket = server.address.startsWith('unix:')
  const isLocal = !isSocket && isLocalAddress(server.address)
  const address = isLocal && server.takesToken ? withToken(server.address, await tokenOf(call)) : server.address
  const url = run === undefined ? address : addressOf(address, run.id)
  await write(`${url}\n`)
  const isWanted = process.stdout.isTTY && !isSet(call, 'print')
  if (isWanted && isLocal) await show(call, server, url)
  else if (isWanted && !isSocket)
    note('Others reach this address too: open it in your browser, and give it a token of yours.')
  return EXIT.completed
}

/** The token of this machine, which its user alone can read; undefined where there is none. */
async function tokenOf({ env }: Call): Promise<string | undefined> {
  const text = await readFile(localTokenFile(env), 'utf8').catch(() => '')
  return /^lgt_[\w-]+$/.exec(text.trim())?.[0]
}

/** Who reads the address in a terminal wants to see the page; a program that reads it wants the address. */
async function show({ env }: Call, server: FoundServer, url: string): Promise<void> {
  if (!(await hasPage(url))) return note('This server has no page: use its API at the address above.')
  const isOpen = await openBrowser(writeLeadingPage(server, url, env), env)
  note(isOpen ? 'Opened in your browser.' : 'There is no browser here to open: use the address above.')
}

async function hasPage(url: string): Promise<boolean> {
  const answer = await fetch(new URL('/', url)).catch(() => undefined)
  return answer?.ok === true && answer.headers.get('content-type')?.startsWith('text/html') === true
}

/** The address of a run: its part of the fragment stands beside the token, which is never sent. */
function addressOf(url: string, runId: string): string {
  if (url.startsWith('unix:')) return `${url} ${runId}`
  return url.includes('#') ? `${url}&run=${runId}` : `${url}/#run=${runId}`
}
