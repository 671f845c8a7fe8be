export { sourceName } from '../tool/source.ts'
export type { AgentFile, ToolSelection } from './agent-file/agent-file.ts'
export { EMPTY_AGENT_FILE } from './agent-file/agent-file.ts'
export { modelOf } from './agent-file/names.ts'
export { type ConvertedFile, type ConvertOptions, convert } from './convert/convert.ts'
export { recipeFileName, writeRecipe } from './convert/write-recipe.ts'
export { DIALECTS } from './dialects/index.ts'
export { type AgentFileOptions, loadAgentFile } from './dialects/load-agent-file.ts'
export {
  type Definition,
  type DiscoveryResult,
  discover,
  findDefinition,
  mentionedIn,
  missingAgents,
} from './discovery/discover.ts'
export { loadDefinition, readDefinition } from './discovery/load-definition.ts'
export type { DiscoveryOptions } from './discovery/options.ts'
export {
  type DiscoveredSkills,
  discoverSkills,
  readSkillFile,
  type Skill,
  skillInstructions,
} from './discovery/skills.ts'
export {
  BUILTIN_TOOLKITS,
  type BuiltinOptions,
  type BuiltinToolkit,
  builtinToolkit,
} from './extension/builtin-toolkit.ts'
export {
  type ExtensionOptions,
  type ExtensionSources,
  extensionSources,
} from './extension/extension-sources.ts'
export { skillsTools } from './extension/skills-tools.ts'
export {
  describeRecipe,
  type LoadedRecipe,
  loadRecipe,
  type RecipeOptions,
  readRecipeFile,
} from './recipe/load-recipe.ts'
export type { AskParameter } from './recipe/parameters.ts'
export type {
  ExtensionConfig,
  Recipe,
  RecipeDescription,
  RecipeParameter,
  RecipeSettings,
  RetryConfig,
  SubRecipe,
} from './recipe/recipe.ts'
export { type NeededSecret, secretsOf, subRecipeValues } from './recipe/sub-recipes.ts'
export {
  readTaskEvent,
  type SubagentNotice,
  subagentLine,
  subagentNotice,
  TaskBoard,
  type TaskEvent,
  type TaskInfo,
} from './task-events.ts'
export { type Notice, type NoticeCode, noticesOf, noticeText } from './text/notice.ts'
export { type ModelUse, modelUse, type ValidationResult, validateDefinition } from './validate-definition.ts'
