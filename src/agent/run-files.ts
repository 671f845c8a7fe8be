import { DefinitionError } from '../base/error.ts'
import { toJson } from '../base/json.ts'
import type { Files, Keeper } from '../files/files.ts'
import { permit } from '../tool/permit.ts'
import type { NodeRun } from './node-run.ts'

/** The runtime's files as a run may use them: by its layers, and by what a person has allowed for its call. */
export function filesOf(run: NodeRun): Files {
  const { home, layers, node } = run
  if (home.files === null) throw new DefinitionError('definition', NO_FILES)
  const input = toJson(node.input.call?.input ?? null)
  return home.files.bind(layers, (request) => input.ok && permit(run, request, input.value).verdict === 'allow')
}

/** Which definitions the rules of a run keep from it. A runtime without files keeps none. */
export function keeperOf(run: NodeRun): Keeper {
  if (run.home.files === null) return () => false
  const files = filesOf(run)
  return (place) => files.isKept(place)
}

const NO_FILES = 'This runtime has no files: give it some with createRuntime({ files }).'
