import { type AnyAgent, createRuntime } from 'legate'
import { sqliteStore } from 'legate/store/sqlite'
import { agentsModule, type Place, until } from './cli.ts'

/** Runs of the agents of `agentsModule` that have ended, or wait for a person, and their ids. No process works on them. */
export async function recorded(place: Place, ...names: readonly string[]): Promise<string[]> {
  const agents = (await import(agentsModule)) as Readonly<Record<string, AnyAgent>>
  const runtime = createRuntime({ store: sqliteStore(place.store) })
  const runs = names.map((name) => runtime.run(agents[name] as AnyAgent, 'What colour is it?' as never))
  const { store } = runtime
  const isAtRest = (id: string) =>
    (store.turn(id)?.state ?? 'running') !== 'running' || store.openNodes(id).some(({ wait }) => wait != null)
  await until('every run has ended or waits', () => runs.every(({ id }) => isAtRest(id)))
  await runtime.close()
  return runs.map(({ id }) => id)
}
