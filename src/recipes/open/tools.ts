import type { NodeRun } from '../../core/agent/hooks/node-run.ts'
import { rowTool } from '../../core/delegation/background/row-tool.ts'
import { markFacts, type Tool } from '../../core/tool/tool.ts'
import type { OfferPlace } from '../../core/tool/toolkit.ts'
import { memoryStoreOf } from '../../core/tools/memory-tools.ts'
import { markOpen, type OpenSpec, type Surface } from '../inline/spec.ts'
import { AGENT_SCHEMA, DELEGATE_SCHEMA, fixedDescription, LOAD_SCHEMA, SUBAGENT_SCHEMA } from './schemas.ts'

const SCHEMAS = { subagent: SUBAGENT_SCHEMA, delegate: DELEGATE_SCHEMA, Agent: AGENT_SCHEMA } as const

/** Makes the tools with which an agent starts subagents that it describes, by name. */
export function openTools(spec: OpenSpec): { readonly [name: string]: Tool } {
  const made = spec.surfaces.map((surface): [string, Tool] => [surface, openTool(spec, surface)])
  const loader = spec.surfaces.includes('delegate') ? [['load', loadTool(spec)] as const] : []
  return Object.fromEntries([...made, ...loader])
}

function openTool(spec: OpenSpec, surface: Surface): Tool {
  // A child of a file has the extensions of that file; one in words has those of its host.
  const hasFiles = spec.discover !== null || spec.subRecipes.length > 0
  const facts = { works: hasFiles ? 'any' : 'same', store: memoryStoreOf(spec.memory ?? {}) } as const
  return markOpen(markFacts(openRowTool(spec, surface), facts))
}

function openRowTool(spec: OpenSpec, surface: Surface): Tool {
  return rowTool({
    name: surface,
    description: fixedDescription(surface),
    input: SCHEMAS[surface],
    alsoTakes: 'all',
    startsChild: true,
    isShown: (place) => isOffered(spec, place),
    // Code that reads files is loaded on first use.
    describe: async (isKept) => (await import('./describe.ts')).describeOpen(spec, surface, isKept),
    operation: async (run: NodeRun, input) => {
      return (await import('./start-open.ts')).startOpen(run, input, { spec, surface })
    },
  })
}

const OWN: ReadonlySet<string> = new Set(['subagent', 'delegate', 'Agent', 'load'])

function isOffered({ nested, compat, mode }: OpenSpec, { depth, model, allowed }: OfferPlace): boolean {
  if (depth > 0 && !nested) return false
  if (compat !== 'aster') return true
  const modelName = model.slice(model.indexOf('/') + 1)
  const hasExtension = allowed.some((name) => !OWN.has(name) && !name.startsWith('recipe__'))
  return mode === 'auto' && !modelName.startsWith('gemini') && hasExtension
}

function loadTool(spec: OpenSpec): Tool {
  return markOpen(
    rowTool({
      name: 'load',
      description:
        'Reads what a source says into this conversation, lists all sources, or waits for a task that delegate has started in the background.',
      input: LOAD_SCHEMA,
      alsoTakes: 'all',
      startsChild: false,
      operation: async (run: NodeRun, input) => (await import('./load.ts')).load(run, input, spec),
    }),
  )
}
