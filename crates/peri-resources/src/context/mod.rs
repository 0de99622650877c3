pub struct ContextEnvironment;
pub struct LocalContext;
