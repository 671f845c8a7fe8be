import type { Json } from '../../base/json.ts'
import type { Id, Node } from '../../graph/rows.ts'
import type { Store } from '../../store/store.ts'
import type { StartedInside } from './lines.ts'

/** The agents that the code of a node has started, as its rows and its log tell. */
export function startedInside(store: Store, node: Node, clean: (input: Json) => Json): StartedInside[] {
  const links = store.linksOf(node.turnId).filter(({ taskId, attempt }) => taskId === node.id && attempt === 1)
  if (links.length === 0) return []
  const story = storyOf(store, node)
  return links.map((link, at) => {
    const before = story.slice(0, story.indexOf(`delegation-start ${link.id}`))
    const ended = links
      .slice(0, at)
      .flatMap(({ id }, place) => (before.includes(`delegation-end ${id}`) ? [place] : []))
    return {
      agent: link.agentName,
      input: clean(store.turn(link.id)?.input ?? null),
      mode: link.mode === 'background' ? 'background' : 'called',
      ...(link.wake === null ? {} : { wake: link.wake }),
      ...(ended.length === 0 ? {} : { after: ended }),
    }
  })
}

const PAGE = 1_000

/** When children of a node began and ended, in order. */
function storyOf(store: Store, { id, turnId, rootId }: Node): string[] {
  const story: string[] = []
  for (let after: number | undefined = store.turn(turnId)?.afterSeq ?? 0; after !== undefined; ) {
    const page = store.events(rootId, after, PAGE)
    for (const { nodeId, body } of page) {
      if (nodeId !== id || (body.type !== 'delegation-start' && body.type !== 'delegation-end')) continue
      story.push(`${body.type} ${body.childRunId satisfies Id}`)
    }
    after = page.length < PAGE ? undefined : page.at(-1)?.seq
  }
  return story
}
