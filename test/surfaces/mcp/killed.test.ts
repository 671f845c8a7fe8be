import type { Client } from '@modelcontextprotocol/client'
import { beforeEach, expect, test } from 'vitest'
import { agentsModule, Place, skipUnlessBuilt } from '../../cli/support/cli.ts'
import { ask, type Served, served } from '../../cli/support/served.ts'
import { connected, newClient, textIn } from './support/clients.ts'

beforeEach(skipUnlessBuilt)

interface Listed {
  readonly runs: readonly { readonly run_id: string; readonly agent: string; readonly state: string }[]
}

/** The runs that the server knows of. */
async function runsOf(client: Client): Promise<Listed['runs']> {
  return ((await client.callTool({ name: 'run_list', arguments: {} })).structuredContent as unknown as Listed).runs
}

test.each([
  // It has no session: the client that lost its call asks on.
  ['the newest revision', 'auto', (_: Served, client: Client) => Promise.resolve(client)],
  // Its session has ended with the server.
  [
    'the one before, with a session',
    'legacy',
    ({ base, token }: Served) => connected(base, token, newClient(undefined, 'legacy')),
  ],
] as const)(
  'a client of %s finds its run again after kill -9 of the server, and gets its answer',
  async (_, mode, again) => {
    const place = new Place()
    const first = await served(place, [agentsModule])
    const client = await connected(first.base, first.token, newClient(undefined, mode))
    const lost = client.callTool({ name: 'lead', arguments: { message: 'Go.' } }).then(
      (result) => ({ result }),
      (error: unknown) => ({ error }),
    )
    await isAtWork(first)
    first.process.kill('SIGKILL')
    await first.process.ended

    const port = new URL(first.base).port
    const second = await served(place, [agentsModule], port)
    const asking = await again(second, client)
    const [run, ...others] = await runsOf(asking)
    expect([run?.agent, run?.state, others]).toEqual(['lead', 'running', []])
    place.open()
    const answer = await asking.callTool({ name: 'run_wait', arguments: { run_id: run?.run_id ?? '' } })
    expect(textIn(answer)).toContain('All of them saw it: 2.')
    expect(await runsOf(asking)).toMatchObject([{ run_id: run?.run_id, state: 'completed' }])
    // Some clients wait for the lost answer until they give up.
    await client.close()
    expect(await lost).toHaveProperty('error')
  },
)

/** Resolves when both subagents of the run have begun. */
async function isAtWork(server: Served): Promise<void> {
  for (;;) {
    const { runs } = (await (await ask(server, '/v1/runs')).json()) as { readonly runs: readonly { runId: string }[] }
    const answer = runs[0] === undefined ? undefined : await ask(server, `/v1/runs/${runs[0].runId}`)
    const { children = [] } = ((await answer?.json()) ?? {}) as { readonly children?: readonly unknown[] }
    if (children.length === 2) return
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}
