import path from 'node:path'
import type { Locator, Page } from 'playwright-core'
import type { Place, Process } from '../../cli/support/cli.ts'
import { ask, type Served, served } from '../../cli/support/served.ts'

export const agents: string = path.resolve(import.meta.dirname, '../programs/agents.mjs')

/** A run that was started over the API. */
export interface Started {
  readonly runId: string
  readonly conversationId: string
}

/** `legate serve` with the agents of these tests. */
export function inspector(place: Place, args: readonly string[] = []): Promise<Served> {
  return served(place, [agents, ...args])
}

/** The same server once more, where the first one was. */
export async function again(place: Place, { base, url, token }: Served): Promise<Served> {
  const process: Process = place.legate(['serve', agents, '--port', new URL(base).port])
  await process.seen(() => process.stdout.includes('\n'), 'the address')
  return { process, url, base, token }
}

/** The address of a place in the page, with the token. */
export function at({ base, token }: Served, place: string): string {
  return `${base}${place}#token=${token}`
}

export async function start(server: Served, agent: string, more: Record<string, unknown> = {}): Promise<Started> {
  const body = JSON.stringify({ agent, input: 'Begin.', ...more })
  return read(await ask(server, '/v1/runs', { method: 'POST', body }))
}

/** The JSON of an answer. */
export async function get<Answer>(server: Served, place: string): Promise<Answer> {
  return read(await ask(server, place))
}

async function read<Answer>(answer: Response): Promise<Answer> {
  if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`)
  return (await answer.json()) as Answer
}

/** The recorded events of a tree. */
export async function eventsOf(server: Served, rootId: string): Promise<readonly EventRow[]> {
  const found: EventRow[] = []
  for (let after: number | null = 0; after !== null; ) {
    const page: { events: EventRow[]; next: number | null } = await get(
      server,
      `/v1/trees/${rootId}/events?limit=1000&after=${after}`,
    )
    found.push(...page.events)
    after = page.next
  }
  return found
}

export interface EventRow {
  readonly seq: number
  readonly at: number
  readonly conversationId: string
  readonly runId: string
  readonly nodeId: string | null
  readonly path: readonly string[]
  readonly parentId: string | null
  readonly body: { readonly type: string } & Readonly<Record<string, unknown>>
}

/** The button that allows the first request of the page, in sight and ready to be pressed. */
export async function readyToAllow(page: Page): Promise<Locator> {
  const button = page.getByRole('button', { name: /^Allow once/ }).first()
  await button.waitFor()
  await button.evaluate((one) => one.scrollIntoView({ block: 'center' }))
  // The page sees a moment later that the button has moved.
  await page.waitForTimeout(250)
  await page.locator('[data-allow][aria-disabled="false"]').first().waitFor()
  return button
}

/** Moves the slider of the time page. */
export async function travel(page: Page, seq: number): Promise<void> {
  await page.getByRole('slider', { name: 'Event' }).fill(String(seq))
}
