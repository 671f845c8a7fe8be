import { closeSync, fchmodSync, fstatSync, openSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { type Call, CliError, EXIT, isSet, textOption } from '../../command/command.ts'
import type { Desk } from '../../desk/desk.ts'
import { findRunOrNode } from '../../store/find-run.ts'
import { withDesk } from '../../store/open-desk.ts'
import { plural } from '../../terminal/amounts.ts'
import { oneLine } from '../../terminal/clean.ts'
import { write, writeExactly } from '../../terminal/output.ts'

/** Writes the whole tree of a run to stdout, or as a page to a file; or its trace, or sends the trace. */
export function exportRun(call: Call): Promise<number> {
  const file = textOption(call, 'html')
  if (file === '') throw new CliError('--html is empty: name the file to write.', EXIT.usage)
  const isTrace = isSet(call, 'otlp')
  if (isTrace && file !== undefined) throw new CliError('Name --html or --otlp, not both.', EXIT.usage)
  const other = ['to', 'content'].find((name) => isSet(call, name) || textOption(call, name) !== undefined)
  if (!isTrace && other !== undefined) throw new CliError(`--${other} is for traces: add --otlp.`, EXIT.usage)
  return withDesk(call, 'read', async (desk) => {
    const { id, rootId } = await findRunOrNode(desk.store, call.words[0] ?? '')
    if (isTrace) return exportTrace(call, desk, id)
    if (file !== undefined) return writePage(desk.export(rootId), file)
    for await (const line of desk.export(rootId)) await writeExactly(`${line}\n`)
    return EXIT.completed
  })
}

async function writePage(lines: AsyncIterable<string>, file: string): Promise<number> {
  const { collectRun } = await import('../../page/collect-run.ts')
  const { htmlOf } = await import('../../page/html-file.ts')
  const html = htmlOf(await collectRun(lines))
  try {
    writePrivately(file, html)
  } catch (error) {
    throw new CliError(`Cannot write ${oneLine(file)}: ${whyNot(file, error as NodeJS.ErrnoException)}`)
  }
  await write(
    `${oneLine(file)}: ${plural(Math.ceil(html.length / 1_000), 'kilobyte')}, opens in any browser without a server.\n`,
  )
  return EXIT.completed
}

/** Only this user may read the file, also where a file was there that others may read. */
function writePrivately(file: string, text: string): void {
  const handle = openSync(file, 'w', 0o600)
  try {
    // A device such as /dev/stdout keeps its mode.
    if (fstatSync(handle).isFile()) fchmodSync(handle, 0o600)
    writeFileSync(handle, text)
  } finally {
    closeSync(handle)
  }
}

function whyNot(file: string, { code, message }: NodeJS.ErrnoException): string {
  if (code === 'ENOENT') return `there is no folder ${oneLine(dirname(file))}. Make it, or name another file.`
  if (code === 'EISDIR') return 'it is a folder. Name a file in it.'
  if (code === 'EACCES' || code === 'EPERM' || code === 'EROFS')
    return 'this user may not write there. Name another file.'
  return oneLine(message)
}

async function exportTrace(call: Call, desk: Desk, runId: string): Promise<number> {
  const trace = JSON.stringify(await desk.otlp(runId, { content: isSet(call, 'content') }))
  const to = textOption(call, 'to')
  if (to === undefined) await writeExactly(`${trace}\n`)
  else await write(await send(collector(to), trace))
  return EXIT.completed
}

/** Collectors take traces at a path of their own. */
function collector(to: string): URL {
  const url = URL.canParse(to) ? new URL(to) : undefined
  if (url === undefined || !['http:', 'https:'].includes(url.protocol)) {
    throw new CliError('--to takes the address of a collector, such as http://localhost:4318.', EXIT.usage)
  }
  if (url.pathname === '/') url.pathname = '/v1/traces'
  return url
}

const SEND_MS = 30_000

async function send(url: URL, body: string): Promise<string> {
  const controller = new AbortController()
  const late = setTimeout(() => controller.abort(), SEND_MS)
  try {
    const answer = await post(url, { body, signal: controller.signal })
    if (!answer.ok) throw new CliError(`The collector ${url.host} answered ${answer.status}.`)
    return `Sent to ${url.host}.\n`
  } finally {
    clearTimeout(late)
  }
}

async function post(url: URL, sent: Pick<RequestInit, 'body' | 'signal'>): Promise<Response> {
  try {
    const headers = { 'content-type': 'application/json' }
    return await fetch(url, { method: 'POST', headers, redirect: 'error', ...sent })
  } catch (error) {
    throw new CliError(`The collector ${url.host} cannot be reached: ${causeOf(error)}.`)
  }
}

function causeOf(error: unknown): string {
  const { cause, message } = error as { readonly cause?: { readonly code?: unknown }; readonly message: string }
  return typeof cause?.code === 'string' ? cause.code : message
}
