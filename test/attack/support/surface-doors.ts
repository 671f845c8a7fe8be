import type { Principal, Runtime } from 'legate'
import { startProcess } from '../../support/process.ts'
import type { Bound, Door, Try } from './door.ts'
import { type Surface, surfaces } from './surfaces.ts'

/** Ways from outside to a worker at the root: every protocol, as the principal whom the worker is bound by. */
export function surfaceDoors(finish: (runtime: Runtime, result: Promise<unknown>) => Promise<void>): readonly Door[] {
  return surfaces.map((surface): Door => {
    return { name: surface.name, depth: 0, hasOffer: false, open: (attempt) => through(surface, attempt, finish) }
  })
}

async function through(
  surface: Surface,
  { create, bound, worker, smuggled }: Try,
  finish: Parameters<typeof surfaceDoors>[0],
): Promise<void> {
  const rows = create()
  const root = worker.make('message')
  const { runtime } = startProcess(rows, { ...bound.runtime, agents: [root], mayFail: true })
  const place = { runtime, principal: principalOf(bound), agent: root.name, smuggled }
  const said = surface.say(place, 'probe').catch(() => undefined)
  const run = await begun(runtime)
  await finish(runtime, run.result)
  await said
  await runtime.close()
  await rows.drop()
}

async function begun(runtime: Runtime) {
  for (;;) {
    const [run] = await runtime.runs()
    if (run !== undefined) return runtime.attach(run.runId)
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
}

/** What binds a worker at the root, as a token says it. */
function principalOf({ layers, request }: Bound): Principal {
  const [layer] = layers?.caller ?? layers?.creator ?? []
  const { deny } = Object(layer ?? null) as { readonly deny?: readonly string[] }
  return {
    id: 'ann',
    scopes: ['start', 'read'],
    ...(deny === undefined ? {} : { grant: { deny: [...deny] } }),
    ...request,
  } as Principal
}
