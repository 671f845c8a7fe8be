import type { NodeRun } from '../../agent/node-run.ts'
import { rowTool } from '../../delegation/background/row-tool.ts'
import type { Tool } from '../../tool/tool.ts'
import type { RetryConfig } from '../recipe/recipe.ts'
import { CHECK, type CheckPlace, ON_FAILURE } from './retry-names.ts'

/**
 * The checks of a recipe, as tasks that follow an answer. One that fails begins all again from the input, after
 * `on_failure`; when no try is left the run has failed. Each command is decided by the grant, as
 * those of the shell are: `exec:npm test`, or `exec:sh -c ...` for what needs a shell.
 */
export function retryTools(retry: RetryConfig, place: CheckPlace): { readonly [name: string]: Tool } {
  const onFailure = retry.onFailure === null ? {} : { [ON_FAILURE]: taskTool(ON_FAILURE, retry, place) }
  return { [CHECK]: taskTool(CHECK, retry, place), ...onFailure }
}

/** No model is shown it, and one that calls it all the same is refused: it runs only after an answer. */
function taskTool(name: string, retry: RetryConfig, place: CheckPlace): Tool {
  return rowTool({
    name,
    description: 'Runs by itself after an answer.',
    inputSchema: { type: 'object', properties: {} },
    alsoTakes: 'all',
    startsChild: false,
    needsGrant: false,
    isShown: () => false,
    operation: async (run: NodeRun) => (await import('./run-checks.ts')).runChecks(run, name, { retry, ...place }),
  })
}
