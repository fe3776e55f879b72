//! Store, authentication and authorisation from outside.
