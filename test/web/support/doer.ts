import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { Place } from '../../cli/support/cli.ts'
import { ask, type Served, served } from '../../cli/support/served.ts'
import { type Started, start } from './inspector.ts'

const program = path.resolve(import.meta.dirname, '../programs/doer.mjs')

/** What a model answers: words, or calls. */
export type Answer = string | { readonly text?: string; readonly calls: readonly Call[] }

interface Call {
  readonly name: string
  readonly input: unknown
}

/** A server with an agent that does what it is told. */
export class Doer {
  readonly place = new Place()
  readonly server: Served
  private readonly marks: string

  private constructor(server: Served, place: Place, marks: string) {
    this.server = server
    this.place = place
    this.marks = marks
  }

  static async serve(): Promise<Doer> {
    const place = new Place()
    const marks = path.join(place.folder, 'marks')
    place.more['LEGATE_TEST_MARKS'] = marks
    return new Doer(await served(place, [program]), place, marks)
  }

  /** A run in which the model gives these answers, one after the other. */
  run(answers: readonly Answer[], more: Record<string, unknown> = {}): Promise<Started> {
    return start(this.server, 'doer', { input: `Do ${JSON.stringify(answers)}`, ...more })
  }

  /** A run that asks for these deployments, one after the other. */
  deploys(...inputs: readonly unknown[]): Promise<Started> {
    return this.run(inputs.map((input) => ({ calls: [{ name: 'deploy', input }] })))
  }

  cancel({ runId }: Started): Promise<Response> {
    return ask(this.server, `/v1/runs/${runId}/cancel`, { method: 'POST', body: '{}' })
  }

  /** The arguments of all deployments that took place. */
  deployed(): unknown[] {
    if (!existsSync(this.marks)) return []
    const lines = readFileSync(this.marks, 'utf8').trimEnd().split('\n')
    return lines.map((line) => JSON.parse(line) as unknown)
  }
}
