import { existsSync } from 'node:fs'
import path from 'node:path'
import { agent, createRuntime, type PendingApproval, type Principal, type Runtime, type RuntimeOptions } from 'legate'
import { atThisMachine } from 'legate/grant'
import { scriptedModel } from 'legate/testing'
import { developerTools, diskFiles } from 'legate/tools'
import { tempFolder } from '../../support/temp-folder.ts'

/** The user of this machine, who works in the workspace, as a person who may answer. */
export const PERSON: Principal = atThisMachine({
  id: 'local',
  scopes: ['start', 'read', 'cancel', 'approve', 'approve:always'],
})

/** What the shell call of the agent needs, one after the other, under the id of one node. */
export const THREE: readonly string[] = ['tool:shell', 'exec:touch PWNED', 'file.list:/workspace']

export interface Thrice {
  readonly runtime: Runtime
  /** Did the command run? */
  readonly isDone: () => boolean
}

/** The options of a runtime with an agent `host` whose one call asks a person for three things. */
export function thriceOptions(): { readonly options: RuntimeOptions; readonly isDone: () => boolean } {
  const workspace = tempFolder()
  const host = agent({
    name: 'host',
    instructions: '',
    tools: developerTools(),
    model: scriptedModel(({ messages }) =>
      messages.at(-1)?.role === 'tool' ? 'Done.' : { calls: [{ name: 'shell', input: { command: 'touch PWNED' } }] },
    ),
    grant: {
      use: ['tool:*', 'model:*', 'exec:*', 'file.*:/workspace/**', 'file.list:/workspace'],
      ask: ['tool:shell', 'exec:*', 'file.list:/workspace'],
    },
  })
  const isDone = () => existsSync(path.join(workspace, 'PWNED'))
  return { options: { agents: [host], files: diskFiles({ workspace }), trustPrograms: true }, isDone }
}

export function asksThrice(): Thrice {
  const { options, isDone } = thriceOptions()
  return { runtime: createRuntime(options), isDone }
}

/** The request that waits now, once it is this one. */
export async function waiting({ runtime }: Pick<Thrice, 'runtime'>, request: string): Promise<PendingApproval> {
  for (;;) {
    const found = (await runtime.approvals()).find((one) => one.request === request)
    if (found !== undefined) return found
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

/** A colleague allows the request that waits now, as it was shown. */
export async function allowed(thrice: Thrice, request: string): Promise<PendingApproval> {
  const asked = await waiting(thrice, request)
  await thrice.runtime.as(PERSON).answer(asked.nodeId, { allow: true, seen: asked.seen })
  return asked
}

/** The requests that are open, and whether the command ran. */
export async function stand({ runtime, isDone }: Thrice): Promise<readonly [string[], boolean]> {
  return [(await runtime.approvals()).map(({ request }) => request), isDone()]
}
