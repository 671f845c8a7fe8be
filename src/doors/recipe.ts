export { RecipeError } from '../core/base/error.ts'
export { sourceName } from '../core/tool/source.ts'
export type { AgentFile, AgentMemory, ToolSelection } from '../recipes/agent-file/agent-file.ts'
export { EMPTY_AGENT_FILE } from '../recipes/agent-file/agent-file.ts'
export type { FileHook, HookEvent } from '../recipes/agent-file/file-hook.ts'
export { shownExtension } from '../recipes/agent-file/mcp-servers.ts'
export { modelOf } from '../recipes/agent-file/names.ts'
export type {
  ExtensionConfig,
  Recipe,
  RecipeDescription,
  RecipeParameter,
  RecipeSettings,
  RetryConfig,
  SubRecipe,
} from '../recipes/agent-file/recipe.ts'
export { type ConvertedFile, type ConvertOptions, convert } from '../recipes/convert/convert.ts'
export { recipeFileName, writeRecipe } from '../recipes/convert/write-recipe.ts'
export { DIALECTS } from '../recipes/dialects/index.ts'
export { type AgentFileOptions, loadAgentFile } from '../recipes/dialects/load-agent-file.ts'
export {
  type Definition,
  type DiscoveryResult,
  discover,
  findDefinition,
  mentionedIn,
  missingAgents,
} from '../recipes/discovery/discover.ts'
export { loadDefinition, readDefinition } from '../recipes/discovery/load-definition.ts'
export type { DiscoveryOptions } from '../recipes/discovery/options.ts'
export {
  type ProjectFile,
  type ProjectFiles,
  type ProjectFilesOptions,
  projectFiles,
} from '../recipes/discovery/project-files.ts'
export {
  type DiscoveredSkills,
  discoverSkills,
  readSkillFile,
  type Skill,
  skillInstructions,
} from '../recipes/discovery/skills.ts'
export {
  BUILTIN_TOOLKITS,
  type BuiltinOptions,
  type BuiltinToolkit,
  builtinToolkit,
} from '../recipes/extension/builtin-toolkit.ts'
export {
  type ExtensionOptions,
  type ExtensionSources,
  extensionSources,
} from '../recipes/extension/extension-sources.ts'
export { skillsTools } from '../recipes/extension/skills-tools.ts'
export { type ChildSettings, MODES, type Mode, type Surface } from '../recipes/inline/spec.ts'
export { type OpenOptions, openSubagents, type SubRecipeOption } from '../recipes/open/open-subagents.ts'
export {
  describeRecipe,
  type LoadedRecipe,
  loadRecipe,
  type RecipeOptions,
  readRecipeFile,
} from '../recipes/recipe/load-recipe.ts'
export type { AskParameter } from '../recipes/recipe/parameters.ts'
export { type NeededSecret, secretsOf, subRecipeValues } from '../recipes/recipe/sub-recipes.ts'
export { type RecipeAgentOptions, recipeAgent } from '../recipes/recipe-agent.ts'
export {
  readTaskEvent,
  type SubagentNotice,
  subagentLine,
  subagentNotice,
  TaskBoard,
  type TaskEvent,
  type TaskInfo,
} from '../recipes/task-events.ts'
export { type Notice, type NoticeCode, noticesOf, noticeText } from '../recipes/text/notice.ts'
export { type ModelUse, modelUse, type ValidationResult, validateDefinition } from '../recipes/validate-definition.ts'
